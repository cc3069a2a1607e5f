"""Diagnosis of data: which model suits them, and how items interact."""
