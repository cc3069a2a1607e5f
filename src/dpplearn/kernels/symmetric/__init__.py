"""The symmetric DPP: P(Y) = det(L_Y)/det(L + I), items that are alike repel."""
