"""Decision trees (ID3, C4.5, CART) grown level by level on the CPU or an NVIDIA GPU."""
