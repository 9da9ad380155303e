"""The same data set as a torch Dataset, which imports torch wherever it
goes."""
from torch.utils.data import Dataset

from dataloader_set import Busy


class BusyDataset(Busy, Dataset):
    pass
