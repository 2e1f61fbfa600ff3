"""The lab of virtual routers: a Dom0, its routers, and the machines that send to them."""
