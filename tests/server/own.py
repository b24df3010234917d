"""Actions that own code carries out, as a configuration declares them."""

OWN = """
[[contract]]
id = "shop.own"
undo = "DELETE /orders/{{id}}"
key = {{ at = "header:Idempotency-Key", kind = "request" }}
repeat = {{ answer = "replay", keeps = "24h", atomic = true }}
late = {{ max = "1s" }}

[[contract]]
id = "shop.own_searched"
undo = "DELETE /orders/{{id}}"
key = {{ at = "body:key", kind = "content" }}
lookup = {{ call = "GET /orders?key={{key}}", by = "key", lag = "0s" }}
late = {{ max = "300ms" }}

[targets.shop]
base = "{target}"
breaker = {{ failures = 3, within = "1m", retry_after = "1s" }}

[actions.own]
by = "client"
target = "shop"
contract = "shop.own"
key = "{{name}}"
owner = "anna"
inputs = {{ name = {{ type = "text" }}, note = {{ required = false, default = "" }} }}
deterministic = true
sends_within = "{lease}"
timeout = "{lease}"
first_delay = "50ms"

[actions.own_searched]
by = "client"
target = "shop"
contract = "shop.own_searched"
key = "{{name}}"
owner = "anna"
inputs = {{ name = {{ type = "text" }} }}
lookup = true
sends_within = "{lease}"
timeout = "{lease}"
first_delay = "50ms"
longest_delay = "200ms"

[actions.own_opaque]
by = "client"
target = "shop"
key = "{{name}}"
owner = "anna"
inputs = {{ name = {{ type = "text" }} }}
timeout = "{lease}"
"""
