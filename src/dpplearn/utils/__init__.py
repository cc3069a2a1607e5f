"""Utilities that do not depend on sets: files, text and tables, progress, processes, threads, memory."""
