"""What is on the wire: captured packets, the headers around them, and STT's own format."""
