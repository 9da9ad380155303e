"""Memory of a training step in torch: survive a shortage, estimate, search."""
