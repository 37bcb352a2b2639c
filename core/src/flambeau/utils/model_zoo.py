"""Downloading trained weights, under the name that older programs use; see `flambeau.hub`."""

from flambeau.hub import download_url_to_file, load_state_dict_from_url

load_url = load_state_dict_from_url

__all__ = ["download_url_to_file", "load_state_dict_from_url", "load_url"]
