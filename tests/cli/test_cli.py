"""The installed program, run as a user runs it."""

from __future__ import annotations

import csv
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dpplearn as dl
from dpplearn.tools.tensor_file import read_tensors
from helpers.program import ENVIRONMENT, PROGRAM, Terminal, answer, begin, both, parsed, run, table, wait_for

MONITOR = "Willow video monitor"


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with data and a model that the program learned from them."""
    folder = tmp_path_factory.mktemp("shop")
    with open(folder / "orders.csv", "w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["basket", "item"])
        for number, basket in enumerate(dl.datasets.make_registries("safety", 400, rng=0)):
            rows.writerows((number, item) for item in basket)
    done = run("fit", folder / "orders.csv", "-o", folder / "model.safetensors", "--seed", 5, "--json")
    assert (done.returncode, done.stderr) == (0, "")
    (folder / "fit.json").write_text(done.stdout)
    return folder


@pytest.fixture(scope="module")
def model(shop: Path) -> Path:
    return shop / "model.safetensors"


@pytest.fixture(scope="module")
def dpp(model: Path) -> dl.DPP:
    return dl.load(model)


@pytest.fixture(scope="module")
def orders(shop: Path) -> dl.Baskets:
    return dl.read_baskets(shop / "orders.csv")


def test_help_is_quick_and_loads_nothing_heavy() -> None:
    code = (
        "import sys, time; sys.argv = ['dpplearn', '--help']\n"
        "from dpplearn.cli import main\n"
        "assert main() == 0\n"
        "assert not {'numba', 'duckdb', 'scipy', 'sklearn'} & set(sys.modules), 'heavy'\n"
        "assert time.process_time() < 1, time.process_time()"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=ENVIRONMENT, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    for command in "demo fit score compare recommend complete map sample diagnose describe explain reproduce".split():
        assert f" {command} " in done.stdout
    assert '"-inf"' in done.stdout  # the convention of --json is documented


def test_version() -> None:
    assert run("--version").stdout == f"dpplearn {dl.__version__}\n"


def test_fit_reports_the_model_that_it_saved(shop: Path, dpp: dl.DPP, orders: dl.Baskets) -> None:
    report = parsed((shop / "fit.json").read_text())
    same = dl.fit(orders, rng=5)
    assert report["train"]["log_likelihood"] == pytest.approx(dpp.log_likelihood(orders), abs=1e-9)
    assert report["train"]["log_likelihood"] == pytest.approx(same.log_likelihood, abs=1e-9)
    assert report["train"]["independent_log_likelihood"] == pytest.approx(same.independent_log_likelihood, abs=1e-9)
    assert (report["stop"], report["n_iter"], report["seed"]) == (same.stop.name, same.n_iter, 5)


def test_fit_reports_on_baskets_held_out_and_every_restart(shop: Path, orders: dl.Baskets) -> None:
    arguments = ["--holdout", 0.25, "--seed", 2, "--restarts", 2, "--max-iter", 5, "--init", "moments", "--threads", 1]
    out = table("fit", shop / "orders.csv", "-o", shop / "held.safetensors", *arguments)
    train, test = orders.split(0.75, rng=2)
    frequencies = train.frequencies()
    held = dl.load(shop / "held.safetensors")
    independent = dl.DPP(dl.Kernel(frequencies, np.eye(len(frequencies))), train.items)
    for value in (held.log_likelihood(train), held.log_likelihood(test), independent.log_likelihood(train)):
        assert f"{value:.4f}" in out
    if np.isneginf(independent.log_likelihood(test)):
        assert "probability zero under independent items" in " ".join(out.split())
    assert "limit on iterations" in out
    assert out.count("max iter") == 2  # one line a run
    assert [line.split()[1] for line in out.splitlines() if "max iter" in line] == ["moments", "wishart"]


def test_fit_reports_how_the_prior_was_chosen(shop: Path, dpp: dl.DPP, orders: dl.Baskets) -> None:
    report = parsed((shop / "fit.json").read_text())
    same = dl.fit(orders, rng=5)
    assert same.prior_choice is not None
    assert report["prior"] == dpp.learned["prior"] == same.prior
    lines = report["prior_choice"]
    assert [line["strength"] for line in lines] == ["inf", *same.prior_choice.strengths[1:].tolist()]
    np.testing.assert_allclose(
        [line["log_likelihood"] for line in lines if line["log_likelihood"] != "-inf"],
        same.prior_choice.log_likelihood[np.isfinite(same.prior_choice.log_likelihood)],
        atol=1e-9,
    )
    assert [line["taken"] for line in lines].index(True) == same.prior_choice.chosen
    assert [report["validation"], report["validation_log_likelihood"], report["nonempty"]] == [None, None, False]


def test_fit_takes_prior_validation_and_nonempty(shop: Path, orders: dl.Baskets) -> None:
    filled = orders.subset(orders.sizes > 0)
    assert len(filled) == len(orders)
    call = ("fit", shop / "orders.csv", "-o", shop / "p.safetensors", "--seed", 1, "--threads", 1)
    with ThreadPoolExecutor(2) as pool:
        closed = pool.submit(answer, *call[:3], shop / "inf.safetensors", *call[4:], "--prior", "inf")
        report, out = both(*call, "--prior", 0.5, "--validation", 0.25, "--patience", 3, "--nonempty")
    same = dl.fit(orders, prior=0.5, validation=0.25, patience=3, nonempty=True, rng=1, threads=1)
    assert (report["prior"], report["validation"], report["nonempty"]) == (0.5, 0.25, True)
    assert (report["prior_choice"], report["stop"], report["n_iter"]) == (None, same.stop.name, same.n_iter)
    held = same.dpp.learned["validation_log_likelihood"]
    assert report["validation_log_likelihood"] == pytest.approx(held, abs=1e-9)
    assert report["train"]["log_likelihood"] == pytest.approx(same.log_likelihood, abs=1e-9)
    np.testing.assert_array_equal(dl.load(shop / "p.safetensors").kernel.K, same.kernel.K)
    words = " ".join(out.split())
    assert "0.5 of the data's weight" in words
    assert f"25% of the baskets, of mean log-likelihood {held:.4f}" in words
    assert "given that it is not empty" in words
    assert (closed.result()["prior"], closed.result()["stop"], closed.result()["converged"]) == (
        "inf",
        "CLOSED_FORM",
        True,
    )


def test_a_strength_under_which_a_basket_is_impossible_is_told_without_a_warning(tmp_path: Path) -> None:
    lines = ["a", "b", "c", "d", "b,c", "a,c", "c", "a", "b", "d", "a,d", "b,d"] * 20
    (tmp_path / "b.txt").write_text("\n".join([*lines, "e,a"]))  # e is in one basket alone
    report, _ = both("fit", tmp_path / "b.txt", "-o", tmp_path / "m.safetensors", "--seed", 0)
    assert report["prior_choice"][-1] == {
        "strength": 0.0,
        "log_likelihood": "-inf",
        "below_the_best": "inf",
        "standard_error": None,
        "taken": False,
    }


def test_fit_starts_from_a_model_and_reports_on_a_test_file(shop: Path, model: Path, dpp: dl.DPP) -> None:
    arguments = ["--learner", "em", "--start", model, "--test", shop / "orders.csv", "--max-iter", 0]
    report = answer("fit", shop / "orders.csv", "-o", shop / "again.safetensors", *arguments)
    assert report["start"] == "given"
    np.testing.assert_allclose(dl.load(shop / "again.safetensors").kernel.K, dpp.kernel.K, atol=1e-12)
    assert report["test"]["log_likelihood"] == pytest.approx(report["train"]["log_likelihood"], abs=1e-12)


def test_score_gives_what_the_library_gives_beside_baselines(
    shop: Path, model: Path, dpp: dl.DPP, orders: dl.Baskets
) -> None:
    report, out = both("score", model, shop / "orders.csv", "--each", "-k", 3, "-k", 7, "--resamples", 50)
    found = dl.evaluate(dpp, orders, k=(3, 7), resamples=50)
    each = [line["log_likelihood"] for line in report["each"]]
    np.testing.assert_allclose(each, dpp.log_prob(orders), atol=1e-9)
    assert report["log_likelihood"] == pytest.approx(np.mean(each), abs=1e-9)
    assert report["baseline_log_likelihood"] == pytest.approx(found.estimate("independent items").value, abs=1e-9)
    assert report["gain"] == pytest.approx(report["log_likelihood"] - report["baseline_log_likelihood"], abs=1e-9)
    assert [row["name"] for row in report["rows"]] == ["model", "independent items", "popularity", "item-to-item"]
    assert report["rows"][3]["ndcg@7"]["value"] == pytest.approx(found.estimate("item-to-item", "ndcg@7").value)
    assert report["rows"][0]["n_impossible"] == 0
    assert f"{np.mean(each):.4f} [" in out
    assert f"{each[-1]:.4f}" in out
    for words in ("recall@3", "over item-to-item", "Calibration of model", "model, diverse", "400 training baskets"):
        assert words in " ".join(out.split())


def test_score_compares_models_and_learns_baselines_from_a_file(shop: Path, model: Path, tmp_path: Path) -> None:
    (tmp_path / "few.txt").write_text(f"{MONITOR},Hazel video monitor\n\n")
    other = tmp_path / "rough.safetensors"
    start = dl.fit(dl.read_baskets(shop / "orders.csv"), max_iter=1).dpp
    start.save(other)
    call = ("score", model, shop / "orders.csv", "--against", other, "--train", tmp_path / "few.txt")
    report, out = both(*call, "--format", "auto", "--nonempty", "--resamples", 50)
    assert [row["name"] for row in report["rows"]][:2] == ["model", "rough"]
    filled = dl.read_baskets(shop / "orders.csv")
    assert report["log_likelihood"] == pytest.approx(dl.load(model).log_likelihood(filled, nonempty=True), abs=1e-9)
    assert report["rows"][1]["log_likelihood"]["value"] == pytest.approx(
        start.log_likelihood(filled, nonempty=True), abs=1e-9
    )
    out = " ".join(out.split())
    assert "log-likelihood over model" in out
    assert "2 training baskets" in out
    assert "given that a basket is not empty" in out


def test_compare_cross_validates_every_combination(shop: Path, orders: dl.Baskets) -> None:
    call = ("compare", shop / "orders.csv", "--learner", "em", "--learner", "auto", "--init", "moments", "--folds", 2)
    report, out = both(*call, "--seed", 3, "--resamples", 50)
    same = {
        "em, moments": {"learner": "em", "init": "moments"},
        "auto, moments": {"learner": "auto", "init": "moments"},
    }
    assert report["models"] == same
    found = dl.cross_validate(orders, same, folds=2, rng=3, resamples=50)
    for row in report["rows"][:2]:
        assert row["log_likelihood"]["value"] == pytest.approx(found.estimate(row["name"]).value, abs=1e-9)
        assert row["folds"] == pytest.approx(found.fold_means(row["name"]).tolist(), abs=1e-9)
    assert "fold 2" in out
    assert "em, moments" in out


def test_probability_zero_is_minus_infinity_in_words_and_a_string_in_json(tmp_path: Path) -> None:
    one_at_most = dl.DPP(dl.Kernel(np.array([0.5, 0.0]), np.eye(2)), ["a", "b"])
    one_at_most.save(tmp_path / "m.safetensors")
    (tmp_path / "b.txt").write_text("a\na,b\n\n")
    report, out = both("score", tmp_path / "m.safetensors", tmp_path / "b.txt", "--each")
    assert report["log_likelihood"] == "-inf"
    assert [line["log_likelihood"] for line in report["each"]] == [np.log(0.5), "-inf", np.log(0.5)]
    assert report["rows"][0]["n_impossible"] == 1
    assert report["gain"] is None  # -inf against -inf is no number
    assert report["rows"][0]["log_likelihood_of_possible"] == pytest.approx(np.log(0.5))
    out = " ".join(out.split())
    assert "model: 1 basket of probability zero, so the mean log-likelihood is minus infinity" in out
    assert "the training data are not known" in out.lower()


def test_recommend_gives_what_the_library_gives(model: Path, dpp: dl.DPP) -> None:
    best = dpp.recommend([MONITOR], 4)
    allow = [option for each in best for option in ("--allow", each.item)]
    report, out = both("recommend", model, MONITOR, "-k", 5, "--deny", best[0].item, *allow)
    assert report["recommendations"] == [each._asdict() for each in best[1:]]
    assert "3 instead of 5" in report["note"]
    for each in best[1:]:
        assert str(each.item) in out
        assert f"{each.probability:.4f}" in out


def test_recommend_for_a_file_of_baskets_is_one_line_of_json_each(model: Path, dpp: dl.DPP, tmp_path: Path) -> None:
    (tmp_path / "b.txt").write_text(f"{MONITOR},Hazel video monitor\n\n")
    call = ("recommend", model, "--baskets", tmp_path / "b.txt", "-k", 2)
    with ThreadPoolExecutor(1) as pool:
        out = pool.submit(table, *call)
        lines = [parsed(line) for line in run(*call, "--json").stdout.splitlines()]
    assert [line["number"] for line in lines] == [0, 1]
    for line, basket in zip(lines, ([MONITOR, "Hazel video monitor"], []), strict=True):
        assert sorted(line["basket"]) == sorted(basket)
        assert [each["item"] for each in line["recommendations"]] == [each.item for each in dpp.recommend(basket, 2)]
    assert "(nothing)" in out.result()


def test_complete_and_map_give_what_the_library_gives(model: Path, dpp: dl.DPP) -> None:
    report, out = both("complete", model, MONITOR, "-k", 4)
    assert [each["item"] for each in report["items"]] == list(dpp.complete([MONITOR], 4))
    assert [each["given"] for each in report["items"]] == [True, False, False, False]
    assert f"{MONITOR} (given)" in out
    report, out = both("map", model)
    assert [each["item"] for each in report["items"]] == list(dpp.greedy_map())
    assert report["log_prob"] == pytest.approx(dpp.greedy_map().log_prob)
    assert str(dpp.greedy_map().items[0]) in out


def test_sample_draws_what_the_library_draws_with_that_seed(model: Path, dpp: dl.DPP) -> None:
    report = answer("sample", model, "-n", 3300, "--seed", 4)  # more than is drawn at a time
    assert report["samples"] == dpp.sample(3300, rng=4)
    out = table("sample", model, "-n", 2, "-k", 3)
    seed = int(out.split("seed ")[1].split()[0])  # without --seed a new one, which is told
    for drawn in dpp.sample(2, k=3, rng=seed):
        assert all(str(item).split()[0] in out for item in drawn)


def test_describe_tells_size_origin_likely_items_and_repelling_pairs(model: Path, dpp: dl.DPP) -> None:
    report, out = both("describe", model, "--top", 2, "--resamples", 0)
    K = dpp.kernel.K
    similarity = np.triu(K**2 / np.outer(K.diagonal(), K.diagonal()), 1)
    i, j = np.unravel_index(similarity.argmax(), K.shape)  # against another chance, but in the same order
    assert report["repelling_pairs"][0]["items"] == [dpp.items[i], dpp.items[j]]
    assert report["repelling_pairs"][0]["substitution"] == pytest.approx(dpp.together.substitution.max())
    both_held = dpp.inclusion_prob([dpp.items[i], dpp.items[j]]) / (1 - dpp.size_distribution[0])  # given not empty
    assert report["repelling_pairs"][0]["probability_of_both"] == pytest.approx(both_held, abs=1e-12)
    assert report["likeliest_items"][0]["item"] == dpp.items[int(np.argmax(dpp.marginals()))]
    assert report["size"]["expected"] == pytest.approx(dpp.expected_size)
    assert report["learned"]["learner"] == "auto"
    assert report["written_with"]["dpplearn"] == dl.__version__
    assert f"{dpp.expected_size:.2f} items" in out


def test_describe_an_item_gives_its_substitutes(model: Path, dpp: dl.DPP) -> None:
    report, out = both("describe", model, "--item", MONITOR)
    assert report["probability"] == pytest.approx(dpp.marginals()[dpp.items.index(MONITOR)])
    assert report["substitutes"] == [each._asdict() for each in dpp.substitutes(MONITOR)]
    assert str(dpp.substitutes(MONITOR)[0].item) in out


def test_demo_counts_what_it_shows() -> None:
    category = "safety"
    report, out = both("demo", "--category", category, "-n", 300)
    group = max(dl.datasets.substitute_groups(category), key=len)
    assert report["held"] in group
    for model in ("em", "popularity"):
        found = [each["item"] for each in report["suggestions"][model]]
        assert [each["same_kind"] for each in report["suggestions"][model]] == [item in group for item in found]
        assert report["held"] not in found
        count = len(set(found) & set(group))
        assert report["again_of_its_kind"][model] == count
        assert f"{count} of the {len(found)}" in report["sentence"]
    assert report["again_of_its_kind"]["popularity"] > 0  # else nothing above was counted
    train, test = dl.datasets.make_registries(category, 300, rng=0).split(0.7, rng=0)
    auto, *learned = report["models"][1:4]
    for line, fitted in (
        (auto, dl.fit(train, rng=0)),
        *((line, dl.fit(train, line["model"].lower(), "wishart", rng=0)) for line in learned),
    ):
        assert line["train"] == pytest.approx(fitted.log_likelihood, abs=1e-9)
        assert line["test"] == ("-inf" if np.isinf(value := fitted.dpp.log_likelihood(test)) else pytest.approx(value))
    k_ascent, em = learned
    gain = 100 * (em["train"] - k_ascent["train"]) / abs(k_ascent["train"])
    assert k_ascent["em_gain_train_percent"] == pytest.approx(gain)
    out = " ".join(out.split())
    assert all(words in out for words in ("independent items", "K-Ascent, to 1e-04", "EM, to 1e-06", "by popularity"))
    assert out.endswith(report["sentence"])


MISTAKES: dict[str, tuple[int, list[str]]] = {
    "fit none.csv -o x.safetensors": (1, ["none.csv"]),
    "fit empty.csv -o x.safetensors": (1, ["empty.csv is empty"]),
    "fit other.csv -o x.safetensors": (1, ["'order', 'product'", "--basket", "--format lines"]),
    "fit orders.csv -o none/x.safetensors": (1, ["no folder none"]),
    "fit orders.csv -o x.safetensors --test strange.txt": (1, ["--test strange.txt", "'hay'"]),
    "score part.safetensors orders.csv": (1, ["part.safetensors", "truncated"]),
    "score none.safetensors orders.csv": (1, ["no file is called none.safetensors"]),
    "score model.safetensors orders.csv --train strange.txt": (1, ["--train strange.txt", "'hay'"]),
    "score model.safetensors orders.csv --against model.safetensors": (2, ["named twice"]),
    "compare orders.csv --prior strong": (2, ["'strong' is neither auto, nor a number"]),
    "compare orders.csv --learner em --learner guess": (2, ["--learner", "auto, em, k-ascent"]),
    "compare orders.csv --folds 5000": (1, ["5000 folds of 400 baskets"]),
    "recommend model.safetensors Willow_video_monitor": (1, ["did you mean 'Willow video monitor'"]),
    "sample model.safetensors -k 99": (1, ["k is 99", "0 to 36 items"]),
    "demo --category safty": (1, ["did you mean 'safety'"]),
    "fit orders.csv -o orders.csv": (2, ["overwrite"]),
    "fit orders.csv -o x.safetensors --learner guess": (2, ["--learner", "auto, em, k-ascent", "dpplearn fit --help"]),
    "fit orders.csv -o x.safetensors --holdout 1.5": (2, ["between 0 and 1"]),
    "fit orders.csv -o x.safetensors --prior 1e308": (
        2,
        ["--prior", "'1e308' is neither auto, nor a number from 0 to"],
    ),
    "fit orders.csv -o x.safetensors --restarts 99999999999999999999": (
        1,
        ["restarts is 99999999999999999999; expected a whole number from 1 to 100,000"],
    ),
    "score model.safetensors orders.csv -k 99999999999999999999": (
        1,
        ["k is 99999999999999999999; expected", "from 1 to"],
    ),
    "sample model.safetensors -n 99999999999999999999": (1, ["n is 99999999999999999999; expected", "from 1 to"]),
    "fit orders.csv -o x.safetensors --prior much": (2, ["--prior", "'much' is neither auto, nor a number"]),
    "fit orders.csv -o x.safetensors --prior -1": (
        2,
        ["--prior", "'-1' is neither auto, nor a number from 0 to 1e+09, nor inf"],
    ),
    "fit orders.csv -o x.safetensors --prior nan": (2, ["--prior", "'nan'"]),
    "fit orders.csv -o x.safetensors --validation 1.5": (2, ["--validation", "0.99"]),
    "fit orders.csv -o x.safetensors --patience 0": (2, ["--patience", "1"]),
    "fit orders.csv -o x.safetensors --learner em --nonempty": (1, ["'em'", "use one of adam, auto, lbfgs"]),
    "fit with_empty.txt -o x.safetensors --nonempty": (1, ["1 of 3 baskets are empty"]),
    "fit one.txt -o x.safetensors --validation 0.5": (1, ["leaves 0 baskets to learn from"]),
    "recommend model.safetensors hay --baskets orders.csv": (2, ["not both"]),
    "sample model.safetensors --colour red": (2, ["--colour"]),
    "sampel": (2, ["sampel"]),
}


@pytest.fixture(scope="module")
def mistakes(shop: Path) -> dict[str, subprocess.CompletedProcess[str]]:
    """All of them at once."""
    (shop / "empty.csv").write_text("")
    (shop / "other.csv").write_text("order,product\n1,2\n")
    (shop / "part.safetensors").write_bytes((shop / "model.safetensors").read_bytes()[:900])
    (shop / "strange.txt").write_text("hay\n")
    (shop / "with_empty.txt").write_text("hay\n\nstraw\n")
    (shop / "one.txt").write_text("hay\n")
    with ThreadPoolExecutor(3) as pool:
        return dict(zip(MISTAKES, pool.map(lambda line: run(*line.split(), cwd=shop), MISTAKES), strict=True))


@pytest.mark.parametrize("line", MISTAKES)
def test_a_users_mistake_is_one_line_and_an_exit_code(
    shop: Path, mistakes: dict[str, subprocess.CompletedProcess[str]], line: str
) -> None:
    code, words = MISTAKES[line]
    done = mistakes[line]
    assert (done.returncode, done.stdout) == (code, "")
    assert done.stderr.startswith("dpplearn: error: ")
    assert done.stderr.count("\n") == 1
    assert all(word in done.stderr for word in words), done.stderr
    assert not (shop / "x.safetensors").exists()


def test_a_warning_is_one_line_that_leaves_the_json_alone(tmp_path: Path) -> None:
    (tmp_path / "b.txt").write_text("a,a\nb\na,b\n")
    done = run("fit", tmp_path / "b.txt", "-o", tmp_path / "m.safetensors", "--json")
    assert done.returncode == 0
    assert parsed(done.stdout)["n_baskets"] == 3
    assert done.stderr.startswith("dpplearn: warning: 1 repeated item in 1 basket")
    assert done.stderr.count("\n") == 1


def test_names_are_shown_as_they_are_and_numbers_whole(tmp_path: Path) -> None:
    names = ["[red]hay[/red]", "evil\x1b[2Jname\n", "word " * 30, "x" * 150]
    dpp = dl.DPP(dl.Kernel(np.array([0.1234, 0.2345, 0.3456, 0.4567]), np.eye(4)), names)
    dpp.save(tmp_path / "m.safetensors")
    out = table("recommend", tmp_path / "m.safetensors")
    assert "[red]hay[/red]" in out
    assert "\x1b" not in out
    assert r"evil\x1b[2Jname\n" in out
    assert out.count("word") == 30
    assert out.count("x" * 20) >= 2
    assert all(value in out for value in ("0.1234", "0.2345", "0.3456", "0.4567"))


def test_progress_goes_to_a_terminal_only_and_quiet_turns_it_off(shop: Path) -> None:
    call = [PROGRAM, "fit", shop / "orders.csv", "-o", shop / "p.safetensors", "--max-iter", "3", "--json"]
    shown = []
    for options in ([], ["--quiet"]):
        terminal = Terminal()
        done = subprocess.run(
            [*call, *options], stdout=subprocess.PIPE, stderr=terminal.theirs, env=ENVIRONMENT, timeout=60, check=True
        )
        shown.append(terminal.close())
        assert parsed(done.stdout.decode())["n_iter"] == 3
    assert "iteration" in shown[0]
    assert "log-likelihood -" in shown[0]
    assert "choosing the prior" in shown[0]
    assert shown[1] == ""


@pytest.mark.parametrize("ending", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_fit_asked_to_end_saves_the_best_model_so_far(
    ending: int, shop: Path, orders: dl.Baskets, tmp_path: Path
) -> None:
    saved, state = tmp_path / "m.safetensors", tmp_path / "state"
    endless = ["--prior", 0, "--tol", 0, "--max-iter", 10**8, "--checkpoint", state, "--json"]
    with begin("fit", shop / "orders.csv", "-o", saved, *endless) as process:
        wait_for(state.exists, process)
        process.send_signal(ending)
        out, err = process.communicate(timeout=60)
    assert process.returncode == 128 + ending
    assert "interrupted" in err
    assert str(saved) in err
    assert err.count("\n") == 1
    report = parsed(out)
    assert report["stop"] == "INTERRUPTED"
    assert report["train"]["log_likelihood"] == pytest.approx(dl.load(saved).log_likelihood(orders), abs=1e-9)


def test_ctrl_c_elsewhere_is_one_line_and_130(model: Path) -> None:
    terminal = Terminal()
    with begin("sample", model, "-n", 500_000, stderr=terminal.theirs) as process:
        wait_for(lambda: "drawing" in terminal.shown, process)
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=60)
    shown = terminal.close()
    assert (process.returncode, out) == (130, "")
    assert shown.splitlines()[-1].endswith("dpplearn: error: interrupted")
    assert "Traceback" not in shown


def test_a_killed_fit_resumes_to_the_model_of_an_uninterrupted_one(shop: Path, tmp_path: Path) -> None:
    state, whole, resumed = tmp_path / "state", tmp_path / "whole.safetensors", tmp_path / "resumed.safetensors"
    call = ["fit", shop / "orders.csv", "--learner", "em", "--init", "wishart", "--seed", 3, "--restarts", 3]
    call += ["--tol", 0, "--max-iter", 250, "--threads", 1]
    with begin(*call, "-o", resumed, "--checkpoint", state) as process:
        wait_for(lambda: state.exists() and len(read_tensors(state, "checkpoint")[1]["finished"]) >= 1, process)
        process.kill()
        process.communicate()
    assert process.returncode == -signal.SIGKILL
    assert not resumed.exists()
    finished = read_tensors(state, "checkpoint")[1]["finished"]
    assert 1 <= len(finished) < 3
    report = answer(*call, "-o", resumed, "--resume", state)
    assert [each["n_iter"] for each in report["restarts"]] == [250] * 3
    assert report["restarts"][0]["seconds"] == finished[0]["seconds"]  # it was not run again
    answer(*call, "-o", whole)
    np.testing.assert_array_equal(dl.load(resumed).kernel.eigenvalues, dl.load(whole).kernel.eigenvalues)
    np.testing.assert_array_equal(dl.load(resumed).kernel.eigenvectors, dl.load(whole).kernel.eigenvectors)


@pytest.mark.parametrize(
    ("command", "taken"),
    [(["sample", "-n", 3000, "--json"], 1), (["describe", "--resamples", 0], 0)],
    ids=["json", "table"],
)
def test_a_closed_pipe_is_one_line(model: Path, command: list[Any], taken: int) -> None:
    with begin(command[0], model, *command[1:]) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.read(taken)
        process.stdout.close()
        err = process.stderr.read()
    assert process.returncode == 1
    assert err == "dpplearn: error: the output was closed before all of it was written\n"
