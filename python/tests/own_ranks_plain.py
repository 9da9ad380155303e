"""The same steps by plain torch: DistributedDataParallel, one process a rank.
`own_ranks_plain.py JOB STEPS OUT`; rank 0 writes the weights as JSON."""
import importlib.util
import json
import sys

import torch
import torch.distributed as dist

import penstock
from penstock._training import module as modules
from penstock._training.optimiser import factor


def main():
    path, steps, out = sys.argv[1], int(sys.argv[2]), sys.argv[3]
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    with open(path) as file:
        job = json.load(file)
    spec = importlib.util.spec_from_file_location("net", "net.py")
    net = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(net)
    facts = json.loads(open("facts.json").read())
    kind = modules.fields_of(facts)["kind"]
    module = net.Net(kind)
    module.load_state_dict({
        name: torch.tensor(values).reshape(module.state_dict()[name].shape)
        for name, values in json.load(open("first.json")).items()})
    model = torch.nn.parallel.DistributedDataParallel(module)
    matrices = [one for one in module.parameters() if one.dim() >= 2]
    others = [one for one in module.parameters() if one.dim() < 2]
    optimizer = torch.optim.AdamW([
        {"params": matrices, "weight_decay": 0.01},
        {"params": others, "weight_decay": 0.0}], lr=job["train"]["lr"])
    loader = penstock.open(job)
    for number, batch in enumerate(loader.batches(steps)):
        tensors = batch.torch()
        count = torch.tensor(float(batch.rows))
        dist.all_reduce(count)
        given = model(x=tensors["x"], kind=tensors["kind"])[:, 0]
        loss = ((given - tensors["y"].reshape(-1)) ** 2).sum() / count
        optimizer.zero_grad()
        (loss * dist.get_world_size()).backward()
        torch.nn.utils.clip_grad_norm_(module.parameters(), 1.0)
        for group in optimizer.param_groups:
            group["lr"] = job["train"]["lr"] * factor(number, 3, steps)
        optimizer.step()
    if dist.get_rank() == 0:
        with open(out, "w") as file:
            json.dump({name: tensor.flatten().tolist() for name, tensor
                       in module.state_dict().items()}, file)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
