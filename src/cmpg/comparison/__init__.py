"""What others would do: methods without a certificate, before the same judge."""
