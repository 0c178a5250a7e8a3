//! The messages of volumes (core/v1).

use super::Row;

pub(super) const TABLE: &[Row] = &[
    "Volume 1:name:s! 2:<inline>:VolumeSource",
    "VolumeSource 1:hostPath:HostPathVolumeSource 2:emptyDir:EmptyDirVolumeSource \
     3:gcePersistentDisk:GCEPersistentDiskVolumeSource 4:awsElasticBlockStore:AWSElasticBlockStoreVolumeSource \
     5:gitRepo:GitRepoVolumeSource 6:secret:SecretVolumeSource 7:nfs:NFSVolumeSource 8:iscsi:ISCSIVolumeSource \
     9:glusterfs:GlusterfsVolumeSource 10:persistentVolumeClaim:PersistentVolumeClaimVolumeSource \
     11:rbd:RBDVolumeSource 12:flexVolume:FlexVolumeSource 13:cinder:CinderVolumeSource 14:cephfs:CephFSVolumeSource \
     15:flocker:FlockerVolumeSource 16:downwardAPI:DownwardAPIVolumeSource 17:fc:FCVolumeSource \
     18:azureFile:AzureFileVolumeSource 19:configMap:ConfigMapVolumeSource \
     20:vsphereVolume:VsphereVirtualDiskVolumeSource 21:quobyte:QuobyteVolumeSource \
     22:azureDisk:AzureDiskVolumeSource 23:photonPersistentDisk:PhotonPersistentDiskVolumeSource \
     24:portworxVolume:PortworxVolumeSource 25:scaleIO:ScaleIOVolumeSource 26:projected:ProjectedVolumeSource \
     27:storageos:StorageOSVolumeSource 28:csi:CSIVolumeSource 29:ephemeral:EphemeralVolumeSource \
     30:image:ImageVolumeSource",
    "HostPathVolumeSource 1:path:s! 2:type:s?",
    "EmptyDirVolumeSource 1:medium:s 2:sizeLimit:Q?",
    "GCEPersistentDiskVolumeSource 1:pdName:s! 2:fsType:s 3:partition:i 4:readOnly:b",
    "AWSElasticBlockStoreVolumeSource 1:volumeID:s! 2:fsType:s 3:partition:i 4:readOnly:b",
    "GitRepoVolumeSource 1:repository:s! 2:revision:s 3:directory:s",
    "SecretVolumeSource 1:secretName:s 2:items:[KeyToPath] 3:defaultMode:i? 4:optional:b?",
    "NFSVolumeSource 1:server:s! 2:path:s! 3:readOnly:b",
    "ISCSIVolumeSource 1:targetPortal:s! 2:iqn:s! 3:lun:i! 4:iscsiInterface:s 5:fsType:s 6:readOnly:b 7:portals:[s] \
     8:chapAuthDiscovery:b 10:secretRef:LocalObjectReference 11:chapAuthSession:b 12:initiatorName:s?",
    "GlusterfsVolumeSource 1:endpoints:s! 2:path:s! 3:readOnly:b",
    "PersistentVolumeClaimVolumeSource 1:claimName:s! 2:readOnly:b",
    "RBDVolumeSource 1:monitors:[s]! 2:image:s! 3:fsType:s 4:pool:s 5:user:s 6:keyring:s \
     7:secretRef:LocalObjectReference 8:readOnly:b",
    "FlexVolumeSource 1:driver:s! 2:fsType:s 3:secretRef:LocalObjectReference 4:readOnly:b 5:options:{s}",
    "CinderVolumeSource 1:volumeID:s! 2:fsType:s 3:readOnly:b 4:secretRef:LocalObjectReference",
    "CephFSVolumeSource 1:monitors:[s]! 2:path:s 3:user:s 4:secretFile:s 5:secretRef:LocalObjectReference 6:readOnly:b",
    "FlockerVolumeSource 1:datasetName:s 2:datasetUUID:s",
    "DownwardAPIVolumeSource 1:items:[DownwardAPIVolumeFile] 2:defaultMode:i?",
    "FCVolumeSource 1:targetWWNs:[s] 2:lun:i? 3:fsType:s 4:readOnly:b 5:wwids:[s]",
    "AzureFileVolumeSource 1:secretName:s! 2:shareName:s! 3:readOnly:b",
    "ConfigMapVolumeSource 1:<inline>:LocalObjectReference 2:items:[KeyToPath] 3:defaultMode:i? 4:optional:b?",
    "VsphereVirtualDiskVolumeSource 1:volumePath:s! 2:fsType:s 3:storagePolicyName:s 4:storagePolicyID:s",
    "QuobyteVolumeSource 1:registry:s! 2:volume:s! 3:readOnly:b 4:user:s 5:group:s 6:tenant:s",
    "AzureDiskVolumeSource 1:diskName:s! 2:diskURI:s! 3:cachingMode:s? 4:fsType:s? 5:readOnly:b? 6:kind:s?",
    "PhotonPersistentDiskVolumeSource 1:pdID:s! 2:fsType:s",
    "PortworxVolumeSource 1:volumeID:s! 2:fsType:s 3:readOnly:b",
    "ScaleIOVolumeSource 1:gateway:s! 2:system:s! 3:secretRef:LocalObjectReference 4:sslEnabled:b \
     5:protectionDomain:s 6:storagePool:s 7:storageMode:s 8:volumeName:s 9:fsType:s 10:readOnly:b",
    "ProjectedVolumeSource 1:sources:[VolumeProjection]! 2:defaultMode:i?",
    "StorageOSVolumeSource 1:volumeName:s 2:volumeNamespace:s 3:fsType:s 4:readOnly:b 5:secretRef:LocalObjectReference",
    "CSIVolumeSource 1:driver:s! 2:readOnly:b? 3:fsType:s? 4:volumeAttributes:{s} \
     5:nodePublishSecretRef:LocalObjectReference",
    "EphemeralVolumeSource 1:volumeClaimTemplate:PersistentVolumeClaimTemplate",
    "ImageVolumeSource 1:reference:s 2:pullPolicy:s",
    "KeyToPath 1:key:s! 2:path:s! 3:mode:i?",
    "DownwardAPIVolumeFile 1:path:s! 2:fieldRef:ObjectFieldSelector 3:resourceFieldRef:ResourceFieldSelector 4:mode:i?",
    "VolumeProjection 1:secret:SecretProjection 2:downwardAPI:DownwardAPIProjection 3:configMap:ConfigMapProjection \
     4:serviceAccountToken:ServiceAccountTokenProjection 5:clusterTrustBundle:ClusterTrustBundleProjection \
     6:podCertificate:PodCertificateProjection",
    "ClusterTrustBundleProjection 1:name:s? 2:signerName:s? 3:labelSelector:LabelSelector 4:path:s! 5:optional:b?",
    "PodCertificateProjection 1:signerName:s 2:keyType:s 3:maxExpirationSeconds:i? 4:credentialBundlePath:s 5:keyPath:s \
     6:certificateChainPath:s",
    "SecretProjection 1:<inline>:LocalObjectReference 2:items:[KeyToPath] 4:optional:b?",
    "DownwardAPIProjection 1:items:[DownwardAPIVolumeFile]",
    "ConfigMapProjection 1:<inline>:LocalObjectReference 2:items:[KeyToPath] 4:optional:b?",
    "ServiceAccountTokenProjection 1:audience:s 2:expirationSeconds:i? 3:path:s!",
];
