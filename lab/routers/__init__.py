"""The lab of virtual routers: a Dom0, its routers, and separate machines that send to them."""
