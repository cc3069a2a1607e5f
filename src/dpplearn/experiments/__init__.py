"""The published algorithms as printed, and the experiments of their paper."""
