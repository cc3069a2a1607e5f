"""The experiments of [GKFT14], run with dpplearn: `python -m reproduction`.

[GKFT14] J. Gillenwater, A. Kulesza, E. Fox and B. Taskar. Expectation-Maximization for Learning Determinantal Point
Processes. NIPS 2014.
"""
