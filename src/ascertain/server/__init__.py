"""The HTTP server: the API `/v1`, the gateway, the intake. It uses the runtime's verbs, no SQL."""
