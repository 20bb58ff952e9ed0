local n = {1, 2, ["x"] = "y"}
function envoy_on_request(handle)
  local h = handle:headers()
  for k, v in pairs(h) do if string.find(v, "^a%d+") then h:replace(k, v:gsub("%a", "b")) end end
  handle:respond({[":status"] = "403"}, "no" .. #n)
end
