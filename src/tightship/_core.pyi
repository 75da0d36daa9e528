"""The native core: placement, host memory, oneDNN programs."""



HAS_ONEDNN: bool = True
