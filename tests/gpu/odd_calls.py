"""Calls that could overstep memory, for a memory checker: odd sizes, wrong shapes, points anywhere."""

import torch

from msda_triton import triton_multiscale_deformable_attention

POINTS = (float("nan"), float("inf"), -float("inf"), 3e38, -1e9, -0.01, 0.0, 0.5, 1.0, 1.01)
LEVELS = ((3, 17), (1, 1), (8, 8))


def call(dtype, channels, points, padding_mode, *, align_corners=False, deterministic=False, queries=7):
    """Forward and backward; every coordinate is one of POINTS."""
    pixels = sum(height * width for height, width in LEVELS)
    img = torch.randn(2, pixels, 2, channels, device="cuda").to(dtype).requires_grad_()
    place = (2, queries, 2, len(LEVELS), points)
    chosen = torch.randint(len(POINTS), (*place, 2), device="cuda")
    where = torch.tensor(POINTS, device="cuda").to(dtype)[chosen].requires_grad_()
    weights = torch.rand(place, device="cuda").to(dtype).requires_grad_()
    shapes = torch.tensor(LEVELS, device="cuda")
    out = triton_multiscale_deformable_attention(
        img, shapes, where, weights, padding_mode, align_corners, deterministic=deterministic
    )
    out.sum().backward()
    torch.cuda.synchronize()
    assert out.isfinite().all()


def wrong_shapes():
    """Levels on the GPU, which nobody reads on the host, that hold more pixels than the image."""
    img = torch.randn(1, 10, 1, 8, device="cuda", requires_grad=True)
    points = torch.rand(1, 5, 1, 1, 2, 2, device="cuda", requires_grad=True)
    weights = torch.rand(1, 5, 1, 1, 2, device="cuda", requires_grad=True)
    shapes = torch.tensor([[50, 50]], device="cuda")
    out = triton_multiscale_deformable_attention(img, shapes, points, weights, "border", False)
    out.sum().backward()
    torch.cuda.synchronize()
    assert out.isnan().all()


def main():
    torch.manual_seed(0)
    for dtype in (torch.float32, torch.float16, torch.bfloat16, torch.float64):
        for padding_mode in ("border", "zeros"):
            call(dtype, 32, 3, padding_mode)
    for channels, points in ((1, 1), (30, 3), (71, 1), (130, 3)):
        call(torch.float32, channels, points, "zeros", align_corners=True)
    for dtype in (torch.float32, torch.bfloat16):  # enough points for the coarse levels' kernel
        call(dtype, 32, 4, "border", queries=2100)
    call(torch.float32, 32, 3, "border", deterministic=True, queries=2800)
    wrong_shapes()
    print("odd calls done")


if __name__ == "__main__":
    main()
