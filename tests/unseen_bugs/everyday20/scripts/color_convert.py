"""Grey levels, brightness mask and thumbnails of RGB pictures with torch."""
import torch

THUMB = 8


def test_card():
    """Eight vertical bars from white to black, as the old TV test card."""
    bars = torch.tensor(
        [[255, 255, 255], [255, 255, 0], [0, 255, 255], [0, 255, 0],
         [255, 0, 255], [255, 0, 0], [0, 0, 255], [0, 0, 0]],
        dtype=torch.uint8,
    )
    return bars.repeat_interleave(8, dim=0).expand(32, -1, -1).permute(2, 0, 1)


def to_grey(rgb):
    r, g, b = rgb.unbind(0)
    return (r + g + b) // 3


def thumbnail(grey, factor=THUMB):
    h, w = grey.shape
    blocks = grey.reshape(h // factor, factor, w // factor, factor)
    return blocks.float().mean(dim=(1, 3)).round().to(torch.uint8)


def is_bright(grey, limit=128):
    return (grey > limit).float().mean().item()


def main():
    card = test_card()
    grey = to_grey(card)
    thumb = thumbnail(grey)
    print("bars ", thumb[0].tolist())
    print(f"bright part {is_bright(grey):.3f}")
    print(f"{tuple(card.shape)} -> {tuple(thumb.shape)} {thumb.dtype}")


if __name__ == "__main__":
    main()
