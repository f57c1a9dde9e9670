"""Draw the figures of reports. Define the colour and marker of each format."""
