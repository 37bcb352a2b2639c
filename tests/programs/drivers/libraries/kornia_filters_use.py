"""Filters, colours, geometry and augmentation of kornia, with gradients."""

import kornia as K
import torch

torch.manual_seed(0)
x = torch.rand(2, 3, 24, 24, requires_grad=True)
fs = {
    "blur": lambda x: K.filters.gaussian_blur2d(x, (5, 5), (1.0, 1.0)),
    "sobel": K.filters.sobel,
    "canny": lambda x: K.filters.canny(x)[0],
    "hsv": K.color.rgb_to_hsv,
    "lab": K.color.rgb_to_lab,
    "gray": K.color.rgb_to_grayscale,
    "rot": lambda x: K.geometry.rotate(x, torch.tensor([30.0, 60.0])),
    "rs": lambda x: K.geometry.resize(x, (12, 12)),
    "med": lambda x: K.filters.median_blur(x, (3, 3)),
    "eq": lambda x: K.enhance.equalize(x),
    "aff": lambda x: K.geometry.affine(x, torch.eye(3)[None, :2].repeat(2, 1, 1)),
    "warp": lambda x: K.geometry.warp_perspective(x, torch.eye(3)[None].repeat(2, 1, 1), (20, 20)),
    "ssim": lambda x: K.metrics.ssim(x, x * 0.9, 5),
    "erode": lambda x: K.morphology.erosion(x, torch.ones(3, 3)),
    "harris": lambda x: K.feature.harris_response(x),
    "unsharp": lambda x: K.filters.unsharp_mask(x, (3, 3), (1.0, 1.0)),
    "bil": lambda x: K.filters.bilateral_blur(x, (3, 3), 0.1, (1.0, 1.0)),
    "adj": lambda x: K.enhance.adjust_hue(x, 0.3),
    "tv": lambda x: K.losses.total_variation(x),
    "lap": lambda x: K.filters.laplacian(x, 3),
    "pyr": lambda x: K.geometry.pyrdown(x),
    "luv": K.color.rgb_to_luv,
    "yuv": K.color.rgb_to_yuv,
    "pers": lambda x: K.geometry.elastic_transform2d(x, torch.zeros(2, 2, 24, 24)),
}
for n, f in fs.items():
    y = f(x)
    v = y.float().abs().mean()
    g = None
    if y.requires_grad:
        x.grad = None
        v.backward()
        g = x.grad.abs().sum().item()
    print(n, v.item(), g if g is None or g == g else "nan")
aug = K.augmentation.AugmentationSequential(
    K.augmentation.RandomHorizontalFlip(p=0.5),
    K.augmentation.ColorJitter(0.1, 0.1, 0.1, 0.1, p=1.0),
    K.augmentation.RandomAffine(20.0, p=1.0),
    K.augmentation.RandomErasing(p=1.0),
    data_keys=["input", "mask"],
)
torch.manual_seed(3)
a, b = aug(x.detach(), x.detach()[:, :1])
print(a.mean().item(), b.mean().item())
R = K.geometry.axis_angle_to_rotation_matrix(torch.tensor([[0.1, 0.2, 0.3]]))
print(
    R.sum().item(),
    K.geometry.rotation_matrix_to_quaternion(R).tolist()
    if hasattr(K.geometry, "rotation_matrix_to_quaternion")
    else 0,
)
pts = torch.rand(1, 8, 2)
print(K.geometry.find_homography_dlt(pts, pts + 0.1).tolist())
