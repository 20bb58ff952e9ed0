// The stream API as scripts see it. An object belongs to one call, and says so when it is used after it.
// Envoy: source/extensions/filters/http/lua/wrappers.cc, filters/common/lua/wrappers.cc
#include "fakes/envoy/filters/lua/vm.h"

namespace wavetank::envoysim {

std::string_view LuaPrelude() {
  return R"lua(
local P, raw_pairs, setmetatable, getmetatable, type = ...
local error, tostring, tonumber, yield = error, tostring, tonumber, coroutine.yield

local current = 0
local function check(object)
  if object.call ~= current then error("object used outside of proper scope", 3) end
end

local function class(methods)
  methods.__index = methods
  methods.__metatable = false
  return methods
end

local Headers = class{}
local function modifiable(self)
  check(self)
  if self.iterating then error("header map cannot be modified while iterating", 3) end
  if self.handle.sealed then error("header map can no longer be modified", 3) end
end
function Headers:get(name) check(self) return P.get(name) end
function Headers:getAtIndex(name, index) check(self) return P.get_at(name, index) end
function Headers:getNumValues(name) check(self) return P.count(name) end
function Headers:add(name, value) modifiable(self) P.add(name, value) end
function Headers:replace(name, value) modifiable(self) P.replace(name, value) end
function Headers:remove(name) modifiable(self) P.remove(name) end
function Headers:setHttp1ReasonPhrase() check(self) end
function Headers:__pairs()
  check(self)
  if self.iterating then error("cannot create a second iterator before completing the first", 2) end
  self.iterating = true
  local list, at = P.list(), 0
  return function()
    at = at + 2
    local name = list[at - 1]
    if name == nil then self.iterating = false return nil end
    return name, list[at]
  end
end

local Metadata = class{}
-- What is not there is no value at all, not even nil: tostring() of it is an error, as in Envoy.
function Metadata:get(key)
  check(self)
  local value = P.metadata()[key]
  if value ~= nil then return value end
end
function Metadata:__pairs() check(self) return raw_pairs(P.metadata()) end

local Dynamic = class{}
function Dynamic:get(filter)
  check(self)
  local values = P.dynamic(filter)
  if values ~= nil then return values end
end
function Dynamic:set(filter, key, value) check(self) P.set_dynamic(filter, key, value) end
function Dynamic:__pairs() check(self) return raw_pairs(P.all_dynamic()) end

local Ssl = class{}
function Ssl:peerCertificatePresented() check(self) return P.info("peerCertificatePresented") ~= nil end
function Ssl:peerCertificateValidated() check(self) return P.info("peerCertificatePresented") ~= nil end
function Ssl:uriSanPeerCertificate()
  check(self)
  local uri = P.info("uriSanPeerCertificate")
  return uri and {uri} or {}
end

local Info = class{}
for _, name in raw_pairs{"protocol", "routeName", "virtualClusterName", "downstreamLocalAddress",
                         "downstreamDirectRemoteAddress", "downstreamRemoteAddress", "requestedServerName"} do
  Info[name] = function(self) check(self) return P.info(name) end
end
function Info:dynamicMetadata() check(self) return setmetatable({call = self.call}, Dynamic) end
function Info:downstreamSslConnection()
  check(self)
  return P.info("tls") and setmetatable({call = self.call}, Ssl) or nil
end

local Connection = class{}
function Connection:ssl() check(self) return P.info("tls") and setmetatable({call = self.call}, Ssl) or nil end

local Body = class{}
function Body:length() check(self) return #P.body() end
function Body:getBytes(index, length)
  check(self)
  local text = P.body()
  if index < 0 or length < 0 or index + length > #text then error("index/length must be >= 0 and (index + length) must be <= buffer size", 2) end
  return text:sub(index + 1, index + length)
end
function Body:setBytes(text) check(self) P.set_body(text) return #text end

local function flat(headers)
  local out = {}
  for name, value in raw_pairs(headers) do
    if type(value) == "table" then
      for _, each in raw_pairs(value) do out[#out + 1] = name out[#out + 1] = each end
    else
      out[#out + 1] = name
      out[#out + 1] = value
    end
  end
  return out
end

local Handle = class{}
function Handle:headers()
  check(self)
  if not self.map then self.map = setmetatable({call = self.call, handle = self}, Headers) end
  return self.map
end
function Handle:body(always)
  check(self)
  if not P.body() and not always then return nil end
  return setmetatable({call = self.call}, Body)
end
function Handle:bodyChunks() check(self) return function() return nil end end
function Handle:trailers() check(self) return nil end
function Handle:metadata() check(self) return setmetatable({call = self.call}, Metadata) end
function Handle:streamInfo() check(self) return setmetatable({call = self.call}, Info) end
function Handle:connection() check(self) return setmetatable({call = self.call}, Connection) end
for method, level in raw_pairs{logTrace = "trace", logDebug = "debug", logInfo = "info", logWarn = "warn",
                               logErr = "error", logCritical = "critical"} do
  Handle[method] = function(self, text) check(self) P.log(level, text) end
end
function Handle:timestamp(resolution)
  check(self)
  if resolution == EnvoyTimestampResolution.MICROSECOND then return P.now() end
  return (P.now() - P.now() % 1000) / 1000
end
function Handle:timestampString() check(self) return tostring(P.now()) end
function Handle:base64Escape(text) check(self) return P.base64(text) end
function Handle:clearRouteCache() check(self) end
function Handle:respond(headers, body)
  check(self)
  if type(headers) ~= "table" then error("bad argument #1 to 'respond' (table expected)", 2) end
  P.respond(flat(headers), body or "")
  return yield("responded")
end
function Handle:httpCall(cluster, headers, body, timeout, asynchronous)
  check(self)
  if type(timeout) == "table" or type(asynchronous) == "table" then
    local options = type(timeout) == "table" and timeout or asynchronous
    timeout, asynchronous = options.timeout_ms, options.asynchronous
  end
  if headers[":path"] == nil or headers[":method"] == nil or headers[":authority"] == nil then
    error("http call headers must include ':path', ':method', and ':authority'", 2)
  end
  local call = self.call
  P.call(cluster, flat(headers), body or "", tonumber(timeout) or 0, asynchronous == true)
  if asynchronous == true then return end
  local answer, text = yield("called")
  current = call
  return answer, text
end

function pairs(object)
  local meta = getmetatable(object)
  if meta == false and type(object) == "table" and object.__pairs then return object:__pairs() end
  return raw_pairs(object)
end

EnvoyTimestampResolution = {MILLISECOND = 1, MICROSECOND = 2}

local calls = 0
return function()
  calls = calls + 1
  current = calls
  return setmetatable({call = calls}, Handle)
end, function(call) current = call end
)lua";
}

}  // namespace wavetank::envoysim
