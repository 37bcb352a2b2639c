"""What layers compute: activations, attention, embeddings, normalisation, recurrence."""
