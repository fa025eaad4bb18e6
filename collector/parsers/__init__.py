"""Parsers of tool output, one file a tool."""
