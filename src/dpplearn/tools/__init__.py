"""What knows nothing of sets: files, threads, progress, memory."""
