"""What knows nothing of sets: files, threads, progress, jobs and their journal, memory, words and tables."""
