"""The compiled inner loops of the symmetric family."""
