"""How Gradio's own components look: every theme variable they read is one of `theme.css`.

Knows the names of custom properties and no page. Fonts are the system's, so nothing is fetched.
"""

from __future__ import annotations

from pathlib import Path

import gradio as gr

STYLES = ("theme.css", "gradio.css", "shell.css", "chat.css")

_VARIABLES = {
    "body_background_fill": "--paper",
    "body_text_color": "--ink",
    "body_text_color_subdued": "--soft",
    "body_text_size": "--text",
    "background_fill_primary": "--card",
    "background_fill_secondary": "--paper",
    "border_color_primary": "--line",
    "border_color_accent": "--line-strong",
    "border_color_accent_subdued": "--line",
    "color_accent": "--indigo",
    "color_accent_soft": "--indigo-wash",
    "link_text_color": "--indigo",
    "link_text_color_active": "--indigo",
    "link_text_color_hover": "--indigo",
    "link_text_color_visited": "--indigo",
    "code_background_fill": "--sunk",
    "block_background_fill": "--card",
    "block_border_color": "--line",
    "block_label_text_color": "--soft",
    "block_label_text_size": "--text-small",
    "block_title_text_color": "--ink",
    "block_title_text_size": "--text-small",
    "block_info_text_color": "--soft",
    "block_info_text_size": "--text-small",
    "block_radius": "--radius-s",
    "container_radius": "--radius-s",
    "panel_background_fill": "--paper",
    "panel_border_color": "--line",
    "table_border_color": "--line",
    "table_even_background_fill": "--card",
    "table_odd_background_fill": "--paper",
    "table_text_color": "--ink",
    "error_background_fill": "--red-wash",
    "error_border_color": "--red",
    "error_text_color": "--red",
    "error_icon_color": "--red",
    "input_background_fill": "--card",
    "input_background_fill_focus": "--card",
    "input_background_fill_hover": "--card",
    "input_border_color": "--line",
    "input_border_color_focus": "--indigo",
    "input_border_color_hover": "--line-strong",
    "input_placeholder_color": "--soft",
    "input_radius": "--radius-s",
    "input_text_size": "--text",
    "slider_color": "--indigo",
    "stat_background_fill": "--indigo-soft",
    "loader_color": "--indigo",
    "checkbox_background_color": "--card",
    "checkbox_background_color_focus": "--card",
    "checkbox_background_color_hover": "--card",
    "checkbox_background_color_selected": "--indigo",
    "checkbox_border_color": "--line-strong",
    "checkbox_border_color_focus": "--indigo",
    "checkbox_border_color_hover": "--indigo",
    "checkbox_border_color_selected": "--indigo",
    "checkbox_label_background_fill": "--card",
    "checkbox_label_background_fill_hover": "--sunk",
    "checkbox_label_background_fill_selected": "--indigo-wash",
    "checkbox_label_border_color": "--line",
    "checkbox_label_border_color_hover": "--line-strong",
    "checkbox_label_border_color_selected": "--indigo-soft",
    "checkbox_label_text_color": "--ink",
    "checkbox_label_text_color_selected": "--ink",
    "checkbox_label_text_size": "--text-small",
    "button_primary_background_fill": "--button",
    "button_primary_background_fill_hover": "--button",
    "button_primary_border_color": "--button",
    "button_primary_text_color": "--button-ink",
    "button_primary_text_color_hover": "--button-ink",
    "button_secondary_background_fill": "--card",
    "button_secondary_background_fill_hover": "--sunk",
    "button_secondary_border_color": "--line",
    "button_secondary_border_color_hover": "--line-strong",
    "button_secondary_text_color": "--ink",
    "button_secondary_text_color_hover": "--ink",
    "button_medium_radius": "--radius-s",
    "button_medium_text_size": "--text",
    "button_small_radius": "--radius-s",
    "button_small_text_size": "--text-small",
}
_CONSTANTS = {
    "block_label_text_weight": "400",
    "block_title_text_weight": "500",
    "button_medium_text_weight": "500",
    "button_small_text_weight": "500",
    "button_large_text_weight": "500",
    "block_shadow": "none",
    "block_border_width": "0px",
    "input_border_width": "1px",
    "input_shadow": "none",
    "input_shadow_focus": "none",
    "checkbox_shadow": "none",
    "checkbox_label_shadow": "none",
    "button_primary_shadow": "none",
    "button_secondary_shadow": "none",
    "layout_gap": "0px",
    "form_gap_width": "0px",
}


def theme() -> gr.themes.Base:
    """Gradio's base theme with all its colours and sizes taken from `theme.css`."""
    base = gr.themes.Base(font=["var(--sans)"], font_mono=["var(--mono)"])
    variables = {name: f"var({value})" for name, value in _VARIABLES.items()}
    both = variables | _CONSTANTS
    known = set(vars(base))
    both |= {f"{name}_dark": value for name, value in both.items() if f"{name}_dark" in known}
    # The sign-in page gets the theme and no style sheet of ours: the variables must come along.
    base.custom_css = (Path(__file__).parent / "theme.css").read_text(encoding="utf-8")
    return base.set(**both)


def style_sheets() -> list[Path]:
    """The style sheets in the order in which they build on one another; other pages' come last."""
    here = Path(__file__).parent
    rest = sorted(p.name for p in here.glob("*.css") if p.name not in STYLES)
    return [here / name for name in (*STYLES, *rest)]
