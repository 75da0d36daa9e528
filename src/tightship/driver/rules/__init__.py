"""What NNAPI says of models, memory and executions, without a socket, a file or a clock."""
