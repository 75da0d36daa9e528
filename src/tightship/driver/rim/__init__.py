"""Where the state machine meets sockets, files, threads and the engine."""
