"""Ridge regression and the two-step fit, against cases with a known answer."""

import numpy as np
import pytest

from scripts.lib.provision.heads import Gates, fit_head, ridge, rms_normalized


def rows(count, width, seed):
    return np.random.default_rng(seed).standard_normal((count, width))


def test_ridge_without_damping_finds_the_exact_map():
    features, truth = rows(200, 6, 0), rows(4, 6, 1)
    assert ridge(features, features @ truth.T, 0.0) == pytest.approx(truth, abs=1e-9)


def test_ridge_matches_its_own_minimum():
    features, targets = rows(50, 5, 0), rows(50, 3, 1)
    damping = 0.1
    found = ridge(features, targets, damping)
    penalty = damping * np.sum(features**2) / 5

    def loss(matrix):
        return np.sum((features @ matrix.T - targets) ** 2) + penalty * np.sum(matrix**2)

    for seed in range(5):
        assert loss(found) < loss(found + 1e-3 * rows(3, 5, seed))


def test_more_damping_gives_a_smaller_map():
    features, targets = rows(50, 5, 0), rows(50, 3, 1)
    norms = [np.linalg.norm(ridge(features, targets, damping)) for damping in (0.0, 0.1, 1.0, 10.0)]
    assert norms == sorted(norms, reverse=True)


def test_damping_means_the_same_at_any_scale_and_amount_of_data():
    features, targets = rows(50, 5, 0), rows(50, 3, 1)
    once = ridge(features, targets, 0.3)
    assert ridge(10 * features, 10 * targets, 0.3) == pytest.approx(once)
    assert ridge(np.tile(features, (4, 1)), np.tile(targets, (4, 1)), 0.3) == pytest.approx(once)


def test_weight_zero_leaves_a_row_out():
    features, targets = rows(60, 5, 0), rows(60, 3, 1)
    weights = np.ones(60)
    weights[40:] = 0
    assert ridge(features, targets, 0.0, weights) == pytest.approx(ridge(features[:40], targets[:40], 0.0))


def test_rms_normalized_rows_have_length_one_whatever_they_had():
    x = rows(4, 8, 0) * np.array([[1.0], [10.0], [0.1], [5.0]])
    assert np.mean(rms_normalized(x, 0.0) ** 2, axis=1) == pytest.approx(np.ones(4))


def test_gate_features_are_silu_times_up():
    gates = Gates(np.array([[1.0, 0.0]]), np.array([[0.0, 2.0]]), np.ones(2), 0.0)
    a, b = rms_normalized(np.array([[3.0, 4.0]]), 0.0)[0]
    assert gates.features(np.array([[3.0, 4.0]])) == pytest.approx(a / (1 + np.exp(-a)) * 2 * b)


def test_extreme_gates_neither_warn_nor_overflow():
    gates = Gates(np.full((1, 2), 1e4), np.ones((1, 2)), np.ones(2), 0.0)
    with np.errstate(all="raise"):
        assert np.isfinite(gates.features(np.array([[-1.0, -1.0], [1.0, 1.0]]))).all()


def test_the_gated_step_learns_what_a_linear_map_cannot():
    width, inner = 6, 24
    gates = Gates(rows(inner, width, 1), rows(inner, width, 2), np.ones(width), 1e-5)
    linear, down = rows(width, width, 3), rows(width, inner, 4)
    features, fresh = rows(2000, width, 5), rows(500, width, 6)

    def truth(f):
        x = f @ linear.T
        return x + gates.features(x) @ down.T

    head = fit_head(features, features @ linear.T, truth(features), gates)
    error = np.mean((head.predict(fresh) - truth(fresh)) ** 2)
    linear_error = np.mean((fresh @ head.projection.T - truth(fresh)) ** 2)
    assert error < 0.05 * linear_error
    assert head.projection.shape == (width, width)
    assert head.down.shape == (width, inner)
