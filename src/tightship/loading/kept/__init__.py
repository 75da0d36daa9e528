"""Programs of GGUF files, kept for later processes of a user; the weights stay in the files.

matrices   a file of matrices taken apart, which processes map
weights    JSON values that say where a file has the weights of a program
programs   reads and writes the entries of the user's cache
variants   reads the model's file when a program is wanted that is not kept
making     has programs made by another process
model      loads a model from its kept program
"""
