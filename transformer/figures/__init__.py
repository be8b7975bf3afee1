"""Plotly figures: arrays and labels in, `go.Figure` out. No torch and no Streamlit here."""
