module longhaul.dev/kit

go 1.22
