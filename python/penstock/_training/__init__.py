"""The steps of a torch module of the user's, for `penstock.train`."""
