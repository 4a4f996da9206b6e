"""Tables, labels and costs that users pass, and their validation."""
