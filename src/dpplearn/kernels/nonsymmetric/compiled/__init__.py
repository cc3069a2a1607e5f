"""The compiled inner loops of the nonsymmetric family."""
