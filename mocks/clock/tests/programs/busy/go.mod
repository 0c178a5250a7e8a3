module longhaul/busy

go 1.24
