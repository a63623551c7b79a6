"""Post-processes the output of a model that makes an image with a depth map: the first
three channels are the colours, the last three hold the depth in two bytes.

https://github.com/huggingface/diffusers/pull/12546
"""
import torch


class VaeImageProcessor:
    config = {"do_normalize": True, "vae_scale_factor": 8}

    @staticmethod
    def denormalize(images):
        return (images * 0.5 + 0.5).clamp(0, 1)

    @staticmethod
    def pt_to_uint8(images):
        return (images * 255).round().to(torch.uint8)

    def _denormalize_conditionally(self, images, do_denormalize=None):
        if do_denormalize is None:
            return self.denormalize(images) if self.config["do_normalize"] else images
        return torch.stack([self.denormalize(images[i]) if do_denormalize[i] else images[i]
                            for i in range(images.shape[0])])


class VaeImageProcessorLDM3D(VaeImageProcessor):
    @staticmethod
    def rgblike_to_depthmap(image):
        """Combines the two bytes of a depth image, [height, width, 3]."""
        return image[:, :, 1] * 2**8 + image[:, :, 2]

    def pt_to_depth(self, images):
        depth_images = []
        for image in images[:, 3:].permute(0, 2, 3, 1):
            bytes_image = self.pt_to_uint8(image)
            depth_images.append(self.rgblike_to_depthmap(bytes_image))
        return torch.stack(depth_images)

    def postprocess(self, image, output_type="pt", do_denormalize=None):
        if output_type == "latent":
            return image
        image = self._denormalize_conditionally(image, do_denormalize)
        rgb = image[:, :3]
        depth = self.pt_to_depth(image)
        return rgb, depth


def normalized_depth(depth):
    depth = depth.float()
    low = depth.amin(dim=(-2, -1), keepdim=True)
    high = depth.amax(dim=(-2, -1), keepdim=True)
    return (depth - low) / (high - low).clamp(min=1.0)


def main(sample):
    processor = VaeImageProcessorLDM3D()
    rgb, depth = processor.postprocess(sample)
    return rgb, depth, normalized_depth(depth)


def inputs():
    g = torch.Generator().manual_seed(4)
    return (torch.rand(2, 6, 8, 8, generator=g) * 2 - 1,)


def fixed_main(*args):
    import os, sys
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    import _fixed
    return _fixed.module(__file__).main(*args)
