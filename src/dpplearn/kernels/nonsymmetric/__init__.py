"""Kernels that repel and attract, in segments of people: P(Y) = Σ_c π_c det (L_c)_Y / det(I + L_c), L_c = D_c C D_c."""
