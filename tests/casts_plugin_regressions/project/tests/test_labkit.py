"""Values of labkit, to the tolerance of its users."""

import numpy as np
import pytest
from labkit import buckets, mixing, packets, pcm, pixels, spectra, states
from labkit.centring import Centring
from labkit.gains import Recorder
from labkit.ids import Populations
from labkit.levels import from_offset_binary, peak_to_peak
from labkit.masks import coincidences, without_bad_pixels

rng = np.random.default_rng(7)


@pytest.fixture
def headers():
    headers = np.zeros((3, 6), np.uint8)
    headers[:, 4:] = [(0, 12), (1, 3), (2, 7)]
    return headers


def test_low_bytes_of_lengths(headers):
    assert packets.packet_lengths(headers).shape == (3,)
    assert ((packets.packet_lengths(headers) - 7).astype(np.uint8) == headers[:, 5]).all()


def test_the_first_packet_starts_the_file(headers):
    starts = packets.packet_starts(headers)
    assert starts[0] == 0 and starts[1] == 19


@pytest.mark.parametrize("samples", [[0, 1, 2], [5, 9, 30000]])
def test_levels_of_small_samples(samples):
    assert from_offset_binary(np.array(samples, np.int16)).tolist() == samples
    assert peak_to_peak(np.array(samples, np.int16)) == max(samples) - min(samples)


def test_levels_of_all_samples_keep_their_bits():
    samples = np.array([-1, -32768, 7], np.int16)
    assert (from_offset_binary(samples).astype(np.int16) == samples).all()


def test_baselines():
    recorder = Recorder([200, 100], [0, -12])
    digital = np.array([-12, 0, 88], np.int16)
    assert recorder.centred(digital, 1).tolist() == [0, 12, 100]
    np.testing.assert_allclose(recorder.physical(digital, 1), [0, 0.12, 1], rtol=1e-6)


@pytest.mark.parametrize("turns", [0, 0.25, 0.5])
def test_a_global_phase_keeps_probabilities(turns):
    state = states.ground_state(2)
    np.testing.assert_allclose(states.probabilities(states.global_phase(state, turns)), abs(state))


def test_opposite_states_interfere_to_nothing():
    state = states.ground_state(1)
    np.testing.assert_allclose(states.interfered(state, state, 0.5), 0, atol=1e-6)


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
def test_grey_is_near_zero(dtype):
    image = np.full((4, 4, 3), 128, dtype)
    assert abs(pixels.normalized(image)).max() < 0.5
    assert pixels.tokens(image, 2).shape == (4, 12)


def test_bad_pixels_are_filled():
    counts = np.array([[3, 9], [7, 65535]], np.uint16)
    good = counts < 1000
    assert without_bad_pixels(counts, good, 5).tolist() == [[3, 9], [7, 5]]
    assert coincidences(counts, counts, good, 6).sum() == 2
    with pytest.raises(ValueError, match="shape"):
        without_bad_pixels(counts, good[0])


def test_ids_of_the_second_population():
    populations = Populations([10, 20])
    ids = np.array([0, 3], np.uint64)
    assert populations.global_ids(ids, 1).tolist() == [10, 13]
    assert populations.neighbours(ids, 1).tolist() == [[9, 12], [11, 14]]


@pytest.mark.parametrize("again", [(), (2, 2)])
def test_each_row_is_visited(again):
    order = np.arange(5)
    assert set(buckets.visiting_order(order, 3, again)) == set(range(5))
    table = rng.standard_normal((5, 2)).astype(np.float32)
    assert buckets.visited(table, order, 3, again).shape == (5 + len(again), 2)


def test_noise_has_its_level():
    silence = np.zeros(20000, np.float32)
    noisy = mixing.with_noise(silence, 0.5, seed=3)
    assert abs(mixing.energy(noisy) - 0.25) < 0.02


def test_a_mixture_without_noise_is_a_sum():
    first, second = np.ones((2, 10), np.float32), np.ones((2, 8), np.float32)
    np.testing.assert_allclose(mixing.mixture(first, second), 2)


def test_pcm_comes_back():
    samples = np.array([[-32768, 0], [17, 32767]], np.int16)
    assert (pcm.to_pcm(pcm.to_float(samples)) == samples).all()
    np.testing.assert_allclose(pcm.mono(samples), [-0.5, 16392 / 32768], rtol=1e-6)


def test_the_largest_magnitude_is_one():
    spectrum = np.array([[3 + 4j, 0], [0, 0]], np.complex64)
    np.testing.assert_allclose(abs(spectra.normalize(spectrum)), [[1, 0], [0, 0]], rtol=1e-6)
    np.testing.assert_allclose(spectra.decibels(spectrum)[:, 0], [0, -100], atol=1e-4)


def test_the_mean_image_is_zero():
    images = rng.integers(0, 255, (3, 4, 4), np.uint8)
    centring = Centring(images)
    batch = images.astype(np.float32)
    assert abs(centring(batch).mean()) < 1e-3
    assert centring.contrast(batch).shape == (3,)
