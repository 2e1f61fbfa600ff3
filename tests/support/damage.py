"""Valid inputs of parsers, damaged in a few places."""

from hypothesis import strategies as st


@st.composite
def damaged(draw: st.DrawFn, valid: st.SearchStrategy[str]) -> str:
    """Draw a valid text; replace up to three short pieces of it, or none."""
    text = draw(valid)
    for _ in range(draw(st.integers(0, 3))):
        begin = draw(st.integers(0, len(text)))
        length = draw(st.integers(0, 8))
        text = text[:begin] + draw(st.text(max_size=8)) + text[begin + length :]
    return text
