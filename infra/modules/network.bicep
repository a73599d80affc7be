// A network for the worker: one subnet for the Container Apps environment, one for
// the private endpoints of the database and the namespace.
param name string
param location string

@description('At least a /24: half of it is the environment\'s, a quarter the endpoints\'.')
param addressPrefix string

resource network 'Microsoft.Network/virtualNetworks@2025-09-01' = {
  name: '${name}-net'
  location: location
  properties: {
    addressSpace: {
      addressPrefixes: [addressPrefix]
    }
    subnets: [
      {
        name: 'apps'
        properties: {
          addressPrefix: cidrSubnet(addressPrefix, 25, 0)
          delegations: [
            {
              name: 'environments'
              properties: {
                serviceName: 'Microsoft.App/environments'
              }
            }
          ]
        }
      }
      {
        name: 'endpoints'
        properties: {
          addressPrefix: cidrSubnet(addressPrefix, 26, 2)
        }
      }
    ]
  }
}

output id string = network.id
output appsSubnetId string = '${network.id}/subnets/apps'
output endpointsSubnetId string = '${network.id}/subnets/endpoints'
