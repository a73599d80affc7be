// A private endpoint and the DNS zone that sends the public name to it.
param name string
param location string
param networkId string
param subnetId string
param targetId string

@allowed(['sqlServer', 'namespace'])
param groupId string

// azure-docs, private-link/private-endpoint-dns.md
var zones = {
  sqlServer: 'privatelink${environment().suffixes.sqlServerHostname}'
  namespace: 'privatelink.servicebus.windows.net'
}

resource endpoint 'Microsoft.Network/privateEndpoints@2025-09-01' = {
  name: name
  location: location
  properties: {
    subnet: {
      id: subnetId
    }
    privateLinkServiceConnections: [
      {
        name: name
        properties: {
          privateLinkServiceId: targetId
          groupIds: [groupId]
        }
      }
    ]
  }
}

resource zone 'Microsoft.Network/privateDnsZones@2024-06-01' = {
  name: zones[groupId]
  location: 'global'
}

resource link 'Microsoft.Network/privateDnsZones/virtualNetworkLinks@2024-06-01' = {
  parent: zone
  name: name
  location: 'global'
  properties: {
    registrationEnabled: false
    virtualNetwork: {
      id: networkId
    }
  }
}

resource records 'Microsoft.Network/privateEndpoints/privateDnsZoneGroups@2025-09-01' = {
  parent: endpoint
  name: 'default'
  properties: {
    privateDnsZoneConfigs: [
      {
        name: groupId
        properties: {
          privateDnsZoneId: zone.id
        }
      }
    ]
  }
}
