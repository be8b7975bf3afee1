"""The files of `deploy/` name what is there: paths, settings, ports; and its page says all settings that there are."""

import configparser
import re
from pathlib import Path

import pytest
import yaml
from app_server import ROOT
from deployed_app import DEPLOY, container_settings, container_sources
from streamlit.config import get_options_for_section

README = (DEPLOY / "README.md").read_text()
SOURCES = [*ROOT.glob("*.py"), *ROOT.glob("transformer/**/*.py"), *ROOT.glob("pages/**/*.py")]
OURS = {name for path in SOURCES for name in re.findall(r"\"(ATTENTION_LAB_[A-Z_]+)\"", path.read_text())}
"""Every setting that the code reads."""
STREAMLITS = {
    "STREAMLIT_SERVER_" + re.sub(r"(?<!^)(?=[A-Z])", "_", name).upper() for name in get_options_for_section("server")
}
OF_LIBRARIES = {"FORWARDED_ALLOW_IPS", "HOME", "MALLOC_ARENA_MAX", "PYTHONDONTWRITEBYTECODE", "PYTHONUNBUFFERED"}


def unit() -> configparser.RawConfigParser:
    parser = configparser.RawConfigParser(strict=False, interpolation=None)
    parser.optionxform = str  # type: ignore[assignment, method-assign]
    parser.read(DEPLOY / "attention-lab.service")
    return parser


def unit_settings() -> dict[str, str]:
    lines = (DEPLOY / "attention-lab.service").read_text().splitlines()
    found = (line.removeprefix("Environment=").partition("=") for line in lines if line.startswith("Environment="))
    return {name: value for name, _, value in found}


@pytest.fixture(scope="module")
def compose() -> dict:
    return yaml.safe_load((DEPLOY / "compose.yaml").read_text())


def test_the_container_holds_all_that_the_app_needs_and_only_what_is_there():
    sources = container_sources()
    assert [source for source in sources if not (ROOT / source).exists()] == []
    needed = {"app.py", "serve.py", "pages", "transformer", "checkpoints", "static", ".streamlit", "requirements.txt"}
    assert needed <= set(sources)
    ignored = (DEPLOY / "Containerfile.dockerignore").read_text().splitlines()
    assert {line[1:] for line in ignored if line.startswith("!")} == set(sources)


def test_the_container_runs_as_another_user_on_a_volume_with_a_health_check():
    lines = (DEPLOY / "Containerfile").read_text().splitlines()
    words = [line.split(" ")[0] for line in lines if re.match(r"[A-Z]+ ", line)]
    assert words.index("USER") > words.index("COPY") and "--chown" not in "".join(lines)
    assert "VOLUME /data" in lines and container_settings()["ATTENTION_LAB_RUNS"] == "/data/runs"
    assert any("_stcore/health" in line for line in lines) and "HEALTHCHECK" in words
    assert (ROOT / "requirements.txt").read_text().count("\ntorch==") == 1


@pytest.mark.parametrize("where", ["container", "unit", "compose"])
def test_every_setting_that_is_set_exists(where, compose):
    found = {
        "container": container_settings,
        "unit": unit_settings,
        "compose": lambda: compose["services"]["app"]["environment"],
    }[where]()
    assert set(found) - OURS - STREAMLITS - OF_LIBRARIES == set()


def test_the_page_documents_the_settings_that_the_code_has_and_no_others():
    assert OURS, "the code reads settings"
    assert set(re.findall(r"ATTENTION_LAB_[A-Z_]+", README)) == OURS


def test_compose_builds_the_container_and_serves_it_under_the_path_of_the_proxy(compose):
    app, proxy = compose["services"]["app"], compose["services"]["proxy"]
    assert (DEPLOY / app["build"]["context"] / app["build"]["dockerfile"]).resolve() == DEPLOY / "Containerfile"
    assert app["read_only"] is True and app["cap_drop"] == ["ALL"]
    assert {volume.split(":")[1] for volume in app["volumes"]} == {"/data"} and "data" in compose["volumes"]
    assert proxy["depends_on"]["app"]["condition"] == "service_healthy"
    address = proxy["networks"]["inside"]["ipv4_address"]
    assert app["networks"] == ["inside"] and app["environment"]["FORWARDED_ALLOW_IPS"] == address
    assert "./nginx.conf:/etc/nginx/conf.d/default.conf:ro" in proxy["volumes"]
    config = (DEPLOY / "nginx.conf").read_text()
    base = app["environment"]["STREAMLIT_SERVER_BASE_URL_PATH"]
    assert f"location /{base}/ {{" in config and base == unit_settings()["STREAMLIT_SERVER_BASE_URL_PATH"]
    assert f"server app:{container_settings()['STREAMLIT_SERVER_PORT']};" in config
    most = int(re.search(r"maxUploadSize = (\d+)", (ROOT / ".streamlit" / "config.toml").read_text())[1])  # type: ignore[index]
    assert f"client_max_body_size {most + 1}m;" in config


def test_the_unit_starts_what_is_there_and_writes_to_its_own_folder_alone():
    service = unit()["Service"]
    folder, command = Path(service["WorkingDirectory"]), service["ExecStart"].split()
    assert command[0] == f"{folder}/.venv/bin/python" and (ROOT / command[-1]).is_file()
    assert service["User"] != "root" and service["ProtectSystem"] == "strict"
    assert unit_settings()["ATTENTION_LAB_RUNS"].startswith(f"/var/lib/{service['StateDirectory']}/")
    assert service["KillMode"] == "process"  # trainings outlive the server


def test_files_that_the_page_names_are_there():
    named = re.findall(r"\]\(([^)#:]+)\)", README) + re.findall(r"`deploy/([\w-]+\.[\w.-]+)`", README)
    assert named and [name for name in named if not (DEPLOY / name).exists()] == []
