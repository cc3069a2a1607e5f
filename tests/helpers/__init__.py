"""What the tests share: the truth by enumeration, problems, strategies, the program as a user runs it."""
