"""Input and output of the driver: sockets, threads and clocks, and the effects of the service."""
