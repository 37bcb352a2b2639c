"""Three steps of the U-Net of milesial, whose program reads photographs."""

import torch
from torch import nn
from unet import UNet
from utils.dice_score import dice_loss

torch.manual_seed(0)
for bilinear in (False, True):
    net = UNet(n_channels=3, n_classes=2, bilinear=bilinear)
    optimizer = torch.optim.RMSprop(net.parameters(), lr=1e-5, momentum=0.9, foreach=True)
    images, masks = torch.randn(1, 3, 48, 40), torch.randint(0, 2, (1, 48, 40))
    for _ in range(3):
        optimizer.zero_grad(set_to_none=True)
        predicted = net(images)
        hot = nn.functional.one_hot(masks, 2).permute(0, 3, 1, 2).float()
        loss = nn.CrossEntropyLoss()(predicted, masks)
        loss += dice_loss(nn.functional.softmax(predicted, dim=1).float(), hot, multiclass=True)
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        optimizer.step()
        print(f"{loss.item():.4f}")
