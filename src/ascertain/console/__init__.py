"""What people see in a browser: pages rendered by the server, working without JavaScript."""
