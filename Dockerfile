# Penstock in a container: the wheel, pyarrow, PyTorch and the built-in models.
#
#   docker build --target cpu --tag penstock .
#   docker build --target cuda --build-arg CUDA=on --tag penstock:cuda .
#   docker run --rm --volume "$PWD:/job" penstock train job.json
#
# With podman, add --format docker: its own format has no SHELL and no HEALTHCHECK.
#
# BASE is the system of the finished image: any with glibc 2.34 and Python 3.10
# or later, such as nvidia/cuda:12.8.0-cudnn-runtime-ubuntu22.04. The image needs
# nothing of CUDA from it: PyTorch's wheels bring their own, and the driver is
# the host's (`penstock doctor` says which one they need).
ARG BASE=debian:bookworm-slim
ARG BUILD_BASE=debian:bookworm-slim

FROM ${BUILD_BASE} AS build
SHELL ["/bin/bash", "-euo", "pipefail", "-c"]
RUN apt-get update && apt-get install -y --no-install-recommends \
      ca-certificates git python3 python3-pip python3-venv \
    && rm -rf /var/lib/apt/lists/*
WORKDIR /src
COPY . .
# on: the part for GPUs is built, too, by the CUDA compiler of PyPI.
ARG CUDA=off
ENV CUDA_PATH=/opt/cuda/nvidia/cu13 CUDACXX=/opt/cuda/nvidia/cu13/bin/nvcc
RUN if [ "$CUDA" = on ]; then \
      python3 -m pip install --no-cache-dir --no-deps --target /opt/cuda \
        nvidia-cuda-nvcc==13.0.88 nvidia-cuda-runtime==13.0.96 \
        nvidia-cuda-crt==13.0.88 nvidia-nvvm==13.0.88 nvidia-cuda-cccl==13.0.85 \
        nvidia-cuda-culibos==13.0.85; \
      ln -s lib /opt/cuda/nvidia/cu13/lib64; \
      ln -s libcudart.so.13 /opt/cuda/nvidia/cu13/lib/libcudart.so; \
      tools/make_wheel --no-try --cuda --torch 2.11 --out /built; \
    else \
      unset CUDACXX; \
      tools/make_wheel --no-try --torch 2.11 --out /built; \
    fi
FROM ${BASE} AS installed
SHELL ["/bin/bash", "-euo", "pipefail", "-c"]
RUN apt-get update && apt-get install -y --no-install-recommends \
      ca-certificates python3 python3-venv \
    && rm -rf /var/lib/apt/lists/* \
    && python3 -m venv /opt/penstock \
    && useradd --create-home --uid 1000 penstock \
    && install -d -o 1000 -g 1000 /cache /runs /job
ENV PATH=/opt/penstock/bin:$PATH \
    XDG_CACHE_HOME=/cache \
    HF_HOME=/cache/huggingface
COPY --from=build /built /built
RUN pip install --no-cache-dir /built/*.whl pyarrow==26.0.1 "fastapi>=0.115" "uvicorn>=0.30,<0.60"
WORKDIR /job
ENTRYPOINT ["penstock"]
CMD ["--help"]
HEALTHCHECK --interval=1m --timeout=30s CMD ["penstock", "doctor", "--parts"]

# PyTorch without CUDA, from its own index (200 MB).
FROM installed AS cpu
ARG TORCH_INDEX=https://download.pytorch.org/whl/cpu
RUN pip install --no-cache-dir torch==2.11.0 --index-url "$TORCH_INDEX"
USER 1000

# PyTorch with CUDA 13, from PyPI (2.5 GB; 4 GB when it is installed).
FROM installed AS cuda
ENV NVIDIA_VISIBLE_DEVICES=all NVIDIA_DRIVER_CAPABILITIES=compute,utility
RUN pip install --no-cache-dir torch==2.11.0
USER 1000
