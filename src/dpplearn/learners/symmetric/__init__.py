"""The learners of a symmetric DPP, one file each."""
