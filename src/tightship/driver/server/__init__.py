"""The driver's input and output: sockets, threads, clocks, and what runs the service's effects."""
